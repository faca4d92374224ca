"""Bindings to frameworks, each attached by hand; none imports its framework."""
