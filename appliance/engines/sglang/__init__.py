"""SGLang: nothing outside this folder knows its flags, endpoints or metrics."""
