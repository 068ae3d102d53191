"""Hypothesis strategies for the things of this field, for one's own property tests.

Import the room that has what is wanted: ``distributions``, ``models`` (next-token functions), ``chains``,
``costs``, ``survivals``, ``traces``, ``scenarios``. Exact things are fractions. Beside each strategy stands,
where there is one, the generator of all small cases, smallest first.
"""
