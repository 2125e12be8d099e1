package ingest

// LookAtDisk does at once what the next tick would do.
func (t *Turn) LookAtDisk() { t.loop.lookAtDisk() }
