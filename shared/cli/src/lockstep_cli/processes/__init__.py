"""`lockstep run`: the processes of services, their output and their pages."""
