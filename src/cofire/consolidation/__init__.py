"""Sleep: what makes a memory that has run for months smaller, more general and still true.

Steps are named, independent and counted; each commits by itself, works on what changed since its
last run, and holds no lock while a model thinks (`cycle`). Nothing here reads a question or writes
what people said: it reads turns, and files what follows from them.
"""
