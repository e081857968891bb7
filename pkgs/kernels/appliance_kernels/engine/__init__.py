"""The kernels inside SGLang: a plugin that takes over where a measurement on this GPU says that it pays."""
