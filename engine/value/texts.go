package value

import "strings"

const (
	arenaMin = 4 << 10
	arenaMax = 1 << 20
	// ownMin is the length from which a string has an arena of its own.
	ownMin = arenaMax / 4
)

// texts holds the strings of a dictionary in arenas. A place in it is
// arena<<32 | offset; the empty text has none. What was written is never changed, so
// that strings that were handed out stay valid: memory comes back when all of an
// arena is dead, or when compact has copied what lives in it, and the last string of
// it that somebody keeps is forgotten.
type texts struct {
	// condemned counts the arenas from which compact copies the texts away; cursor
	// is the entry that it looks at next.
	condemned int
	cursor    uint32

	arenas []arena
	vacant []uint32 // numbers of arenas that were dropped
	last   int      // the arena being filled, once there is one
	bytes  int      // capacity of all arenas
	live   int      // bytes of all texts that are in use
}

// arena is a Builder that was grown once and is only appended to.
type arena struct {
	builder   *strings.Builder // nil if dropped
	live      int              // bytes in use
	condemned bool
}

// get returns the text of a place. It aliases the arena.
func (t *texts) get(place uint64, length uint32) string {
	if length == 0 {
		return ""
	}
	offset := place & (1<<32 - 1)
	return t.arenas[place>>32].builder.String()[offset : offset+uint64(length)]
}

// store copies s and returns its place.
func (t *texts) store(s string) uint64 {
	if s == "" {
		return 0
	}
	i := t.last
	switch {
	case len(s) >= ownMin:
		i = t.begin(len(s))
	case len(t.arenas) == 0 || t.arenas[i].room() < len(s):
		// Arenas double in size up to arenaMax, so that small graphs stay small.
		size := max(min(max(t.bytes, arenaMin), arenaMax), len(s))
		t.last = t.begin(size)
		if i != t.last {
			t.dropIfDead(i)
		}
		i = t.last
	}
	a := &t.arenas[i]
	place := uint64(i)<<32 | uint64(a.builder.Len())
	a.builder.WriteString(s)
	a.live += len(s)
	t.live += len(s)
	return place
}

// room returns how many bytes can be written to the arena without moving it.
func (a *arena) room() int {
	if a.builder == nil {
		return 0
	}
	return a.builder.Cap() - a.builder.Len()
}

// begin makes an arena and returns its number.
func (t *texts) begin(size int) int {
	i := len(t.arenas)
	if last := len(t.vacant) - 1; last >= 0 {
		i = int(t.vacant[last])
		t.vacant = t.vacant[:last]
	} else {
		t.arenas = append(t.arenas, arena{})
	}
	builder := new(strings.Builder)
	builder.Grow(size)
	t.arenas[i] = arena{builder: builder}
	t.bytes += builder.Cap()
	return i
}

// forget takes a text of the given length out of use.
func (t *texts) forget(place uint64, length uint32) {
	if length == 0 {
		return
	}
	i := int(place >> 32)
	t.arenas[i].live -= int(length)
	t.live -= int(length)
	t.dropIfDead(i)
}

// dropIfDead drops an arena without live texts unless it is being filled.
func (t *texts) dropIfDead(i int) {
	a := &t.arenas[i]
	if a.live > 0 || i == t.last || a.builder == nil {
		return
	}
	t.bytes -= a.builder.Cap()
	if a.condemned {
		t.condemned--
	}
	*a = arena{}
	t.vacant = append(t.vacant, uint32(i))
}

// condemn chooses the arenas that are mostly dead, if half of all memory is dead, and
// begins to copy what lives in them. Copying waits for that half, so that in the
// long run it costs a small part of what made the texts.
func (t *texts) condemn() {
	if t.condemned > 0 || t.bytes < 2*t.live+arenaMax {
		return
	}
	for i := range t.arenas {
		a := &t.arenas[i]
		if a.builder != nil && i != t.last && a.live <= a.builder.Cap()/2 {
			a.condemned = true
			t.condemned++
		}
	}
	t.cursor = 0
}

// isCondemned reports whether the text at a place is to be copied.
func (t *texts) isCondemned(place uint64, length uint32) bool {
	return length > 0 && t.arenas[place>>32].condemned
}
