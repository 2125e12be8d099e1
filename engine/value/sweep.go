package value

const (
	// inLimbo in an entry's refs says that the entry is in the list limbo.
	inLimbo   = 1 << 31
	countMask = inLimbo - 1
)

const (
	// sweepMin and compactMin bound what one Sweep does besides what was interned
	// since the last one: the dead of a dropped relation, and the texts in arenas that
	// are half empty, go bit by bit.
	sweepMin   = 4096
	compactMin = 256
	// limboKept is the capacity of the list that is kept; more came from a bulk.
	limboKept = 1 << 16
)

// Retain keeps the entry of id from being swept until it was released as often. It
// has no effect for an id that is not counted.
func (in *Interner) Retain(id ID) {
	if id.IsCounted() {
		in.retain(uint32(id - firstEntryID))
	}
}

// Release takes back one Retain.
func (in *Interner) Release(id ID) {
	if id.IsCounted() {
		in.release(uint32(id - firstEntryID))
	}
}

// RetainRow is Retain of each cell.
func (in *Interner) RetainRow(row []ID) {
	for _, id := range row {
		if id.IsCounted() {
			in.retain(uint32(id - firstEntryID))
		}
	}
}

// ReleaseRow is Release of each cell.
func (in *Interner) ReleaseRow(row []ID) {
	for _, id := range row {
		if id.IsCounted() {
			in.release(uint32(id - firstEntryID))
		}
	}
}

func (in *Interner) retain(i uint32) {
	e := in.at(i)
	// An entry that was ever retained so often stays for good.
	if e.refs&countMask != countMask {
		e.refs++
	}
}

func (in *Interner) release(i uint32) {
	e := in.at(i)
	switch e.refs & countMask {
	case 0:
		panic("value: an id was released more often than retained")
	case countMask:
		return
	}
	e.refs--
	if e.refs == 0 {
		e.refs = inLimbo
		in.limbo = append(in.limbo, i)
	}
}

// Sweep gives up values that nobody retains. It is for the end of a commit, when no
// caller has ids in hand that no row holds. Its work is bounded by what was interned
// since the last time; it reports whether there is more for another Sweep to do.
func (in *Interner) Sweep() (more bool) {
	if len(in.limbo) == 0 && in.texts.condemned == 0 {
		return false // and what was interned is in limbo until now
	}
	// Twice what was interned, so that as many may have been released each time.
	budget := min(sweepMin+2*in.interned, len(in.limbo))
	for range budget {
		last := len(in.limbo) - 1
		i := in.limbo[last]
		in.limbo = in.limbo[:last]
		if e := in.at(i); e.refs == inLimbo {
			in.drop(i)
		} else {
			e.refs &^= inLimbo
		}
	}
	if len(in.limbo) == 0 && cap(in.limbo) > limboKept {
		in.limbo = nil
	}
	in.compact(compactMin + 4*in.interned)
	in.interned = 0
	return len(in.limbo) > 0 || in.texts.condemned > 0
}

// drop frees an entry.
func (in *Interner) drop(i uint32) {
	v := in.entry(i)
	in.unplace(in.hash(v), i)
	e := in.at(i)
	if v.kind == String || v.kind == Bytes {
		in.texts.forget(e.word, e.meta&stringMax)
	}
	*e = entry{word: uint64(in.free)}
	in.free = i + 1
	in.used--
}

// compact looks at up to n entries whose texts may lie in condemned arenas.
func (in *Interner) compact(n int) {
	t := &in.texts
	t.condemn()
	for ; n > 0 && t.condemned > 0; n-- {
		if t.cursor == in.made {
			panic("value: a condemned arena has live texts that no entry has")
		}
		e := in.at(t.cursor)
		t.cursor++
		kind := Kind(e.meta >> stringBits)
		if kind != String && kind != Bytes {
			continue
		}
		length := e.meta & stringMax
		if t.isCondemned(e.word, length) {
			place := t.store(t.get(e.word, length))
			t.forget(e.word, length)
			e.word = place
			n -= int(length) >> 8 // the longer the text, the fewer of them
		}
	}
}

// unplace removes an entry from the table.
func (in *Interner) unplace(hash, entry uint32) {
	s := in.segmentOf(hash)
	mask := uint32(len(s.slots) - 1)
	hole := hash & mask
	for s.slots[hole] != uint64(hash)<<32|uint64(entry+1) {
		if s.slots[hole] == 0 {
			panic("value: an entry is not in the table")
		}
		hole = (hole + 1) & mask
	}
	// Whatever was put behind the hole because the hole was taken moves up, so that
	// searches may end at the first empty slot.
	for i := (hole + 1) & mask; s.slots[i] != 0; i = (i + 1) & mask {
		home := uint32(s.slots[i]>>32) & mask
		if (i-home)&mask >= (i-hole)&mask {
			s.slots[hole] = s.slots[i]
			hole = i
		}
	}
	s.slots[hole] = 0
	s.used--
}
