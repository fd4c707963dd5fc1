"""`lockstep plan`: what a flow would create, alter, grant and copy, before anything runs."""
