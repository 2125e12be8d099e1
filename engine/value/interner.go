package value

import (
	"cmp"
	"errors"
	"hash/maphash"
	"math/bits"
)

// ID stands for one Value inside one Interner. An ID below 1<<31 is that int
// itself, and the three highest are null and the bools; all other values have a
// dictionary entry and an ID from 1<<31 up. Two IDs of one Interner that are in use
// are equal if and only if their values are, so joins compare IDs alone. An Interner
// that is given the same calls gives the same IDs.
type ID uint32

// IsCounted reports whether the value has a dictionary entry, which goes when nobody
// retains it.
func (id ID) IsCounted() bool { return id-firstEntryID < entriesMax }

// The IDs that are the same in every Interner, like those of the ints.
const (
	NullID  ID = 1<<32 - 1
	TrueID  ID = 1<<32 - 2
	FalseID ID = 1<<32 - 3
)

// firstEntryID is the ID of dictionary entry 0; smaller IDs are inline ints.
const firstEntryID ID = 1 << 31

// ErrFull is returned when all of nearly 2^31 dictionary entries are in use, or for a
// string or bytes of 2^29 bytes or more. The interner goes on serving what it holds.
var ErrFull = errors.New("value: the dictionary of values is full")

const (
	// Below the IDs that are the same everywhere, some are always left to callers that
	// need IDs for values of their own.
	entriesMax = 1<<31 - 1<<20

	// Chunks are never copied or moved: growing costs one allocation, however
	// much is held already.
	chunkEntries = 4096
	entryBytes   = 16 // without the text
	stringBits   = 29
	stringMax    = 1<<stringBits - 1

	// A segment splits when it would outgrow segmentMax slots, so that the
	// longest pause of an insertion is a few thousand slots, not a whole table.
	segmentMin = 8
	segmentMax = 4096
	// depthMax hash bits choose the segment. Segments of that depth do grow
	// beyond segmentMax, since more splits could not be told apart by 32 bits.
	depthMax = 20
)

// Interner gives each distinct Value one ID and keeps the value while somebody
// retains the ID, and until the next Sweep in any case. Its tables hold no pointers
// per value, so that the garbage collector's work does not grow with them, and no
// insertion ever copies a whole table. The text of a value that it returned stays
// valid, even when the interner has given it up.
//
// It is for one goroutine at a time. The hash is seeded at random, which keeps
// writers from choosing strings that collide; IDs do not depend on it.
type Interner struct {
	// What a Sweep without work reads stands together.
	limbo    []uint32 // entries with the flag inLimbo
	interned int      // new entries since the last Sweep
	texts    texts

	seed    maphash.Seed
	seedInt uint64

	chunks []*[chunkEntries]entry
	made   uint32 // entries ever made: those below are in use or in the free list
	free   uint32 // first entry of the free list + 1; the link is in an entry's word
	used   uint32 // entries in use
	limit  uint32 // entriesMax, less in tests

	directory []*segment // 1<<depth entries, indexed by the hash's top bits
	depth     uint8
	slots     int // of all segments
}

// entry is what the dictionary holds of a value, in one place: whoever interns a
// value reads it and retains it soon after.
type entry struct {
	word uint64 // the bits of a value without text, or where the text is
	meta uint32 // kind<<stringBits | length of the text; 0 in the free list
	refs uint32 // how often the value is retained, and inLimbo
}

// segment is an open-addressing table of slots hash<<32 | entry+1; 0 is empty.
// All its hashes agree in their first depth bits.
type segment struct {
	slots []uint64
	used  int
	depth uint8
}

// NewInterner returns an empty Interner of a few hundred bytes.
func NewInterner() *Interner {
	seed := maphash.MakeSeed()
	in := &Interner{
		seed:    seed,
		seedInt: maphash.String(seed, "int"),
		limit:   entriesMax,
	}
	in.directory = []*segment{in.newSegment(segmentMin, 0)}
	return in
}

// Intern returns v's ID, making a dictionary entry if v is new. It copies the
// text of a new string. An entry that nobody retains goes with the next Sweep. The
// only error is ErrFull. It allocates only when a new value begins a chunk or an
// arena of texts, or grows a segment. v must be valid.
func (in *Interner) Intern(v Value) (ID, error) {
	if id, ok := inline(v); ok {
		return id, nil
	}
	hash := in.hash(v)
	if id, ok := in.find(v, hash); ok {
		return id, nil
	}
	if in.used == in.limit || len(v.str) > stringMax {
		return 0, ErrFull
	}
	entry := in.addEntry(v)
	in.place(hash, entry)
	return firstEntryID + ID(entry), nil
}

// Lookup returns v's ID, and false if v was never interned. It never grows the
// interner and never allocates. v must be valid.
func (in *Interner) Lookup(v Value) (ID, bool) {
	if id, ok := inline(v); ok {
		return id, true
	}
	return in.find(v, in.hash(v))
}

// Value returns what id stands for; id must come from this Interner and not have
// been swept. A string value aliases the interner's memory, which never changes: who
// keeps it for long keeps an arena of up to 1 MiB, and had better clone it.
func (in *Interner) Value(id ID) Value {
	if id < firstEntryID {
		return Value{kind: Int, bits: uint64(id)}
	}
	if id >= FalseID {
		return constant(id)
	}
	return in.entry(uint32(id - firstEntryID))
}

// constant returns the value of one of the IDs that no entry has.
func constant(id ID) Value {
	if id == NullID {
		return OfNull()
	}
	return OfBool(id == TrueID)
}

// Compare is Compare of the values that a and b stand for.
func (in *Interner) Compare(a, b ID) int {
	if a == b {
		return 0
	}
	if a < firstEntryID && b < firstEntryID {
		return cmp.Compare(a, b)
	}
	return Compare(in.Value(a), in.Value(b))
}

// Room returns how many IDs from FalseID down no entry has: a caller may use them for
// values of its own, as long as the interner does not fill up meanwhile.
func (in *Interner) Room() int { return int(FalseID-firstEntryID) - int(in.made) }

// Len returns the number of dictionary entries in use; inline ints have none.
func (in *Interner) Len() int { return int(in.used) }

// Bytes returns the memory that the interner holds, in bytes.
func (in *Interner) Bytes() int {
	return len(in.chunks)*chunkEntries*entryBytes + in.texts.bytes +
		8*in.slots + 8*len(in.directory) + 4*cap(in.limbo)
}

// Held returns about how many bytes the values in use take, those included that the
// next Sweep gives up.
func (in *Interner) Held() uint64 {
	const each = entryBytes + 2*8 // and a slot in segments that are half full
	return uint64(in.used)*each + uint64(in.texts.live)
}

// inline returns the ID of a value without an entry.
func inline(v Value) (ID, bool) {
	if v.kind == Int && v.bits < uint64(firstEntryID) {
		return ID(v.bits), true
	}
	switch v.kind {
	case Bool:
		return FalseID + ID(v.bits), true
	case Null:
		return NullID, true
	default:
		return 0, false
	}
}

// hash returns 32 well-mixed bits: the top ones choose the segment, the low
// ones the slot.
func (in *Interner) hash(v Value) uint32 {
	switch v.kind {
	case String:
		return uint32(maphash.String(in.seed, v.str) >> 32)
	case Bytes:
		return ^uint32(maphash.String(in.seed, v.str) >> 32)
	case Invalid:
		panic("value: the invalid value was interned")
	}
	h := v.bits ^ in.seedInt ^ uint64(v.kind)<<56
	high, low := bits.Mul64(h^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	h = high ^ low
	high, low = bits.Mul64(h^in.seedInt, 0x8ebc6af09c88c6e3)
	return uint32((high ^ low) >> 16)
}

// at returns dictionary entry i.
func (in *Interner) at(i uint32) *entry { return &in.chunks[i/chunkEntries][i%chunkEntries] }

// entry returns the value of dictionary entry i.
func (in *Interner) entry(i uint32) Value {
	e := in.at(i)
	kind := Kind(e.meta >> stringBits)
	if kind != String && kind != Bytes {
		return Value{kind: kind, bits: e.word}
	}
	return Value{kind: kind, str: in.texts.get(e.word, e.meta&stringMax)}
}

// addEntry gives v an entry in the dictionary, not in the table.
func (in *Interner) addEntry(v Value) uint32 {
	i := in.free - 1
	switch {
	case in.free != 0:
		in.free = uint32(in.at(i).word)
	default:
		i = in.made
		if int(i/chunkEntries) == len(in.chunks) {
			in.chunks = append(in.chunks, new([chunkEntries]entry))
		}
		in.made++
	}
	e := in.at(i)
	e.meta, e.refs, e.word = uint32(v.kind)<<stringBits|uint32(len(v.str)), inLimbo, v.bits
	if v.kind == String || v.kind == Bytes {
		e.word = in.texts.store(v.str)
	}
	in.limbo = append(in.limbo, i)
	in.interned++
	in.used++
	return i
}

func (in *Interner) newSegment(slots int, depth uint8) *segment {
	in.slots += slots
	return &segment{slots: make([]uint64, slots), depth: depth}
}

func (in *Interner) segmentOf(hash uint32) *segment {
	// A shift by 32 is 0 in Go, which is the one segment of depth 0.
	return in.directory[hash>>(32-in.depth)]
}

// find returns v's ID if v has an entry.
func (in *Interner) find(v Value, hash uint32) (ID, bool) {
	slots := in.segmentOf(hash).slots
	mask := uint32(len(slots) - 1)
	for i := hash & mask; slots[i] != 0; i = (i + 1) & mask {
		if uint32(slots[i]>>32) != hash {
			continue
		}
		if entry := uint32(slots[i]) - 1; in.entry(entry) == v {
			return firstEntryID + ID(entry), true
		}
	}
	return 0, false
}

// place adds an entry that the table does not hold yet.
func (in *Interner) place(hash, entry uint32) {
	s := in.segmentOf(hash)
	for s.used >= len(s.slots)/4*3 {
		if len(s.slots) < segmentMax || s.depth == depthMax {
			in.grow(s)
		} else {
			in.split(s, hash)
		}
		s = in.segmentOf(hash)
	}
	s.put(uint64(hash)<<32 | uint64(entry+1))
}

// grow doubles one segment.
func (in *Interner) grow(s *segment) {
	old := s.slots
	in.slots += len(old)
	s.slots, s.used = make([]uint64, 2*len(old)), 0
	for _, slot := range old {
		if slot != 0 {
			s.put(slot)
		}
	}
}

// split replaces the segment s, which hash belongs to, by two that differ in
// one more hash bit.
func (in *Interner) split(s *segment, hash uint32) {
	if s.depth == in.depth {
		wider := make([]*segment, 2*len(in.directory))
		for i, old := range in.directory {
			wider[2*i], wider[2*i+1] = old, old
		}
		in.directory, in.depth = wider, in.depth+1
	}
	halves := [2]*segment{
		in.newSegment(len(s.slots), s.depth+1), in.newSegment(len(s.slots), s.depth+1),
	}
	in.slots -= len(s.slots)
	for _, slot := range s.slots {
		if slot != 0 {
			halves[slot>>(63-s.depth)&1].put(slot)
		}
	}
	// The directory entries of one segment lie side by side.
	span := 1 << (in.depth - s.depth)
	first := int(hash>>(32-in.depth)) &^ (span - 1)
	for i := range span {
		in.directory[first+i] = halves[2*i/span]
	}
}

// put stores a slot in a segment that has room.
func (s *segment) put(slot uint64) {
	mask := uint32(len(s.slots) - 1)
	i := uint32(slot>>32) & mask
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = slot
	s.used++
}
