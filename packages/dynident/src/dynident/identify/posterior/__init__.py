"""Prior, posterior and physical consistency."""
