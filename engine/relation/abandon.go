package relation

// Abandon releases the cells of all rows, visible or not, about n rows at a time, and
// reports whether there are more. It is for a relation that goes as a whole: nothing
// else may be done with it once that has begun.
func (r *Relation) Abandon(n int) (more bool) {
	if r.symbols == nil {
		return false
	}
	if r.deferring != 0 {
		return true // a pin may still read them
	}
	for n > 0 && len(r.set.segments) > 0 {
		last := len(r.set.segments) - 1
		s := &r.set.segments[last]
		for ; n > 0 && len(s.slots) > 0; s.slots = s.slots[:len(s.slots)-1] {
			if slot := s.slots[len(s.slots)-1]; slot != 0 {
				r.symbols.ReleaseRow(r.Row(RowID(uint32(slot) - 1)))
				n--
			}
		}
		if len(s.slots) == 0 {
			r.set.segments = r.set.segments[:last]
		}
	}
	return len(r.set.segments) > 0
}
