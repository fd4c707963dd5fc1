"""The server of `/live`, `/ready`, `/status` and `/metrics`, and who may read them."""
