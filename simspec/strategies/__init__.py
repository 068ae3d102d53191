"""Hypothesis strategies for the things of this field, for one's own property tests.

Import the room that has what is wanted: ``distributions``, ``models`` (next-token functions), ``chains``,
``costs``, ``survivals``, ``made_up_models``, ``traces`` of them, ``scenarios`` that replay these (and
``token_by_token`` decodes); ``outcomes`` has all that a cycle of a chain can do. Exact things are fractions.
Beside each strategy stands, where there is one, the generator of all small cases, smallest first.
"""
