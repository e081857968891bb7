"""What the SGLang that is installed here does, read from its source: nothing of it is guessed or typed in."""
