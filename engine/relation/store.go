package relation

import "github.com/heddle-live/heddle/engine/value"

// store is records of one length in chunks of chunkRows; only the first is recopied
// to grow, while it is smaller than that. No chunk holds pointers.
type store struct {
	chunks [][]value.ID
	stride int // words of a record
}

func (s *store) record(id RowID) []value.ID {
	at := int(id&(chunkRows-1)) * s.stride
	return s.chunks[id>>chunkBits][at : at+s.stride : at+s.stride]
}

// addChunk makes room for that many records more.
func (s *store) addChunk(records int) {
	s.chunks = append(s.chunks, make([]value.ID, records*s.stride))
}

// double makes the first chunk twice as long.
func (s *store) double() {
	grown := make([]value.ID, 2*len(s.chunks[0]))
	copy(grown, s.chunks[0])
	s.chunks[0] = grown
}

func (s *store) bytes() int {
	n := 0
	for _, c := range s.chunks {
		n += 4 * len(c)
	}
	return n
}
