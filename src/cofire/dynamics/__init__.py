"""Pure mathematics of memory: no I/O, no clock, no state. Arrays in, arrays out."""
