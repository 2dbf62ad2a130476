"""Nothing at all."""
