"""What the API shows, made of reports and rows. Pure: nothing is asked of a cluster here."""
