package las

// Quantum is in which quantum a job is that has attained so much.
func Quantum(c Config, served, milli int64) (from, to int64) { return c.quantum(served, milli) }
