package relation

import (
	"math/bits"

	"github.com/heddle-live/heddle/engine/value"
)

// Multipliers of the row hash: odd, with bits spread over both halves.
const (
	hashSeed   = 0x8F1BBCDC5A827999
	hashFold   = 0xA3EC647659359ACD
	hashFinish = 0xC6BC279692B5C323
)

// hashPair folds two cells into h. The high half of the product carries what the
// low half loses.
func hashPair(h uint64, a, b value.ID) uint64 {
	high, low := bits.Mul64(h^(uint64(a)|uint64(b)<<32), hashFold)
	return high ^ low
}

// hashEnd spreads sequential ids over both ends of the hash: a table takes its
// segment from the top bits and the slot from the bottom ones.
func hashEnd(h uint64) uint32 {
	h ^= h >> 29
	h *= hashFinish
	return uint32(h ^ h>>32)
}

func hashCells(cells []value.ID) uint32 {
	h := uint64(hashSeed) + uint64(len(cells))
	i := 0
	for ; i+1 < len(cells); i += 2 {
		h = hashPair(h, cells[i], cells[i+1])
	}
	if i < len(cells) {
		h = hashPair(h, cells[i], 0)
	}
	return hashEnd(h)
}

// hashColumns hashes the cells of row at columns as hashCells hashes a key that
// holds just these.
func hashColumns(row []value.ID, columns []int) uint32 {
	h := uint64(hashSeed) + uint64(len(columns))
	i := 0
	for ; i+1 < len(columns); i += 2 {
		h = hashPair(h, row[columns[i]], row[columns[i+1]])
	}
	if i < len(columns) {
		h = hashPair(h, row[columns[i]], 0)
	}
	return hashEnd(h)
}
