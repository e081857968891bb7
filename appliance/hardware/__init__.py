"""What is published about GPUs: a table of data sheets, for facts that a machine's own report does not have."""
