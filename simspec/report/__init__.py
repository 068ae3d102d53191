"""A study of one trace as a page with figures: the only room that knows matplotlib and jinja2."""
