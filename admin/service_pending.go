package admin

import "github.com/heddle-live/heddle/engine/value"

// Op inserts or deletes one row of a base relation.
type Op struct {
	Relation string
	Delete   bool
	Row      []value.Value
}

// Diff says what an apply changes.
type Diff struct{}

// ApplyResult says what Apply did, or would do.
type ApplyResult struct {
	Revision uint64 // of the commit; for a dry run the present one
	Schema   uint64 // number of the program in force afterwards
	Created  bool   // the graph was created
	DryRun   bool
	Diff     *Diff
}
