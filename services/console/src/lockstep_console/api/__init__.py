"""The console's API: a module for each subject, each with its `ROUTES`. `pages.py` joins them."""
