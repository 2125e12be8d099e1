package relation

const (
	segmentCount     = 256 // of a large table
	segmentShift     = 32 - 8
	smallSlots       = 4096 // above this a table is split into segments
	firstSlots       = 8
	firstSegmentSize = 32
)

// table is a set of row references under 32-bit hashes: open addressing with
// linear probing. A small table is one segment; a large one has segmentCount of
// them, chosen by the top bits of the hash, which grow one at a time, so that no
// single insertion ever moves the whole table.
//
// A slot holds the hash above the row reference (id + 1; 0 is an empty slot):
// probes compare hashes before they touch a row, and growth touches no row at all.
type table struct {
	segments []segment
	shift    uint // of the hash, to its segment; 32 while there is one segment
}

type segment struct {
	slots []uint64 // a power of two
	used  int
}

func newTable() table {
	return table{segments: []segment{{slots: make([]uint64, firstSlots)}}, shift: 32}
}

// segmentOf returns the segment of hash and the slot where its probing begins.
func (t *table) segmentOf(hash uint32) (*segment, uint64) {
	s := &t.segments[hash>>t.shift]
	return s, uint64(hash) & s.mask()
}

func (s *segment) mask() uint64 { return uint64(len(s.slots) - 1) }

// slotHash is the hash where a slot keeps it.
func slotHash(hash uint32) uint64 { return uint64(hash) << 32 }

// holds reports whether a slot's hash is this one.
func holds(slot uint64, hash uint32) bool { return uint32(slot>>32) == hash }

// insert adds a reference that the table does not hold.
func (t *table) insert(hash, ref uint32) {
	s, _ := t.segmentOf(hash)
	if s.used*4 >= len(s.slots)*3 {
		if len(t.segments) == 1 && len(s.slots) >= smallSlots {
			t.split()
			s, _ = t.segmentOf(hash)
		}
		if s.used*4 >= len(s.slots)*3 {
			s.grow()
		}
	}
	s.place(slotHash(hash) | uint64(ref))
	s.used++
}

// split moves the only segment's slots to segmentCount new ones. It happens once,
// while the table is small.
func (t *table) split() {
	old := t.segments[0].slots
	t.segments = make([]segment, segmentCount)
	for i := range t.segments {
		t.segments[i].slots = make([]uint64, firstSegmentSize)
	}
	t.shift = segmentShift
	for _, slot := range old {
		if slot != 0 {
			t.insert(uint32(slot>>32), uint32(slot))
		}
	}
}

func (s *segment) place(slot uint64) {
	mask := s.mask()
	i := slot >> 32 & mask
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = slot
}

func (s *segment) grow() {
	old := s.slots
	s.slots = make([]uint64, 2*len(old))
	for _, slot := range old {
		if slot != 0 {
			s.place(slot)
		}
	}
}

// removeAt empties slot i and moves what probed past it back, so that probing
// needs no tombstones.
func (s *segment) removeAt(i uint64) {
	mask := s.mask()
	for j := (i + 1) & mask; s.slots[j] != 0; j = (j + 1) & mask {
		home := s.slots[j] >> 32 & mask
		if (j-home)&mask >= (j-i)&mask {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = 0
	s.used--
}

// find returns the segment and slot that hold ref under hash. The table must
// hold it.
func (t *table) find(hash, ref uint32) (*segment, uint64) {
	s, i := t.segmentOf(hash)
	want := slotHash(hash) | uint64(ref)
	for s.slots[i] != want {
		if s.slots[i] == 0 {
			panic("relation: a row is missing from its hash table")
		}
		i = (i + 1) & s.mask()
	}
	return s, i
}

func (t *table) bytes() int {
	n := 0
	for i := range t.segments {
		n += 8*len(t.segments[i].slots) + 32
	}
	return n
}
