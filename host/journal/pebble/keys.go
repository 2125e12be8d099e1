package pebble

import (
	"bytes"
	"encoding/binary"

	"github.com/heddle-live/heddle/host/journal"
)

// Keys that belong to no graph. Source: docs/formats/journal.md, "Keys".
const (
	formatKey      = "m/format"
	formatValue    = "heddle-journal 1"
	openingsPrefix = "m/o/"
	graphsPrefix   = "g/"
	graphsEnd      = "g0" // '0' follows '/'
)

// The letter of a key behind its graph's prefix.
const (
	letterFact    = 'f'
	letterHead    = 'h'
	letterReceipt = 'i'
	letterProgram = 'p'
	letterRecord  = 't'
)

// appendGraphPrefix appends what every key of a graph begins with. No name holds
// a slash, so that no graph's keys lie among another one's.
func appendGraphPrefix(dst []byte, name string) []byte {
	dst = append(dst, graphsPrefix...)
	dst = append(dst, name...)
	return append(dst, '/')
}

// appendSection appends what every key of one kind of a graph begins with.
func appendSection(dst []byte, prefix []byte, letter byte) []byte {
	dst = append(dst, prefix...)
	return append(dst, letter, '/')
}

// sectionEnd returns the first key behind a section.
func sectionEnd(section []byte) []byte {
	end := bytes.Clone(section)
	end[len(end)-1]++
	return end
}

func appendFact(dst []byte, relation uint32, tuple []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, relation)
	return append(dst, tuple...)
}

func appendReceiptKey(dst []byte, prefix []byte, caller, key string) []byte {
	dst = appendSection(dst, prefix, letterReceipt)
	// The length keeps caller "a" with key "bc" apart from caller "ab", key "c".
	dst = binary.AppendUvarint(dst, uint64(len(caller)))
	dst = append(dst, caller...)
	return append(dst, key...)
}

func openingKey(graph string) []byte { return append([]byte(openingsPrefix), graph...) }

// graphOfKey returns the graph that a key of the graphs' range belongs to.
func graphOfKey(key []byte) (string, bool) {
	rest := key[len(graphsPrefix):]
	before, _, ok := bytes.Cut(rest, []byte{'/'})
	if !ok {
		return "", false
	}
	name := string(before)
	return name, journal.CheckName(name) == nil
}
