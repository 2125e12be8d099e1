package ingest

// TickClock does at once what the next tick would do to the clock.
func (t *Turn) TickClock() { t.loop.tickClock(t.work) }

// LookAtDisk does at once what the next tick would do.
func (t *Turn) LookAtDisk() { t.loop.lookAtDisk() }
