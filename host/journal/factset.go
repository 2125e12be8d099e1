package journal

import "github.com/cespare/xxhash/v2"

// FactSet is a running summary of a set of facts: their number and the sum of
// their XXH64 hashes modulo 2^64. It does not depend on order, and adding and
// removing undo each other, so that a head can carry it from record to record
// and a scan of all facts can be held against it. It finds what disks lose; it
// is no defence against somebody who makes facts on purpose.
type FactSet struct {
	Count uint64
	Sum   uint64
}

// Add counts a fact that was absent; fact is the relation, 4 bytes big-endian,
// and the tuple.
func (s *FactSet) Add(fact []byte) {
	s.Count++
	s.Sum += xxhash.Sum64(fact)
}

// Remove counts a fact that was present.
func (s *FactSet) Remove(fact []byte) {
	s.Count--
	s.Sum -= xxhash.Sum64(fact)
}
