package frame

import (
	"cmp"
	"slices"
)

// Compare orders rows as snapshots do: cell by cell, null first, ints, floats and
// timestamps by magnitude, strings by their UTF-8 bytes, bytes by bytes, false before
// true. Cells of different kinds, which one typed column never has, are ordered numbers,
// strings, bools, bytes, timestamps; a shorter row comes before its extensions.
func Compare(a, b Row) int {
	for i := range min(len(a), len(b)) {
		if c := compareCells(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareCells(a, b any) int {
	switch a := a.(type) {
	case int64:
		switch b := b.(type) {
		case int64:
			return cmp.Compare(a, b)
		case float64: // only untyped, where ints are small enough to be exact
			return cmp.Or(cmp.Compare(float64(a), b), -1)
		}
	case float64:
		switch b := b.(type) {
		case float64:
			return cmp.Compare(a, b)
		case int64:
			return cmp.Or(cmp.Compare(a, float64(b)), 1)
		}
	case string:
		if b, ok := b.(string); ok {
			return cmp.Compare(a, b)
		}
	case bool:
		if b, ok := b.(bool); ok {
			return cmp.Compare(truth(a), truth(b))
		}
	case Bytes:
		if b, ok := b.(Bytes); ok {
			return cmp.Compare(a, b)
		}
	case Timestamp:
		if b, ok := b.(Timestamp); ok {
			return cmp.Compare(a, b)
		}
	}
	return cmp.Compare(rank(a), rank(b))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func rank(c any) Type {
	switch c.(type) {
	case int64:
		return Int
	case float64:
		return Float
	case string:
		return String
	case bool:
		return Bool
	case Bytes:
		return BytesType
	case Timestamp:
		return TimestampType
	}
	return Untyped // null
}

// sorted returns rows in order and without duplicates: rows itself if it is so
// already, as a correct writer's rows are, otherwise a copy.
func sorted(rows []Row) []Row {
	for i := 1; i < len(rows); i++ {
		if Compare(rows[i-1], rows[i]) >= 0 {
			rows = slices.Clone(rows)
			slices.SortFunc(rows, Compare)
			return slices.CompactFunc(rows, func(a, b Row) bool { return Compare(a, b) == 0 })
		}
	}
	return rows
}

// difference returns the rows that entered and left between two sorted sets.
func difference(before, after []Row) (entered, left []Row) {
	i, j := 0, 0
	for i < len(before) && j < len(after) {
		switch c := Compare(before[i], after[j]); {
		case c < 0:
			left = append(left, before[i])
			i++
		case c > 0:
			entered = append(entered, after[j])
			j++
		default:
			i, j = i+1, j+1
		}
	}
	return append(entered, after[j:]...), append(left, before[i:]...)
}

// patched returns rows without retract and with insert, all sorted sets, and
// false if a retracted row was not there or an inserted one was. rows itself
// stays as it is.
func patched(rows, insert, retract []Row) ([]Row, bool) {
	if len(retract) > 0 {
		out := make([]Row, 0, max(len(rows)-len(retract), 0))
		for _, r := range retract {
			at, found := slices.BinarySearchFunc(rows, r, Compare)
			if !found {
				return nil, false
			}
			out = append(out, rows[:at]...)
			rows = rows[at+1:]
		}
		rows = append(out, rows...)
	}
	if len(insert) > 0 {
		out := make([]Row, 0, len(rows)+len(insert))
		for _, r := range insert {
			at, found := slices.BinarySearchFunc(rows, r, Compare)
			if found {
				return nil, false
			}
			out = append(append(out, rows[:at]...), r)
			rows = rows[at:]
		}
		rows = append(out, rows...)
	}
	return rows, true
}
