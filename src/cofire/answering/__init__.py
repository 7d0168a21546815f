"""Answers from memory: a context within a budget, a model or none, citations, honest refusals."""
