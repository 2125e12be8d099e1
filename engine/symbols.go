package engine

import "github.com/heddle-live/heddle/engine/value"

func (s mainSymbols) Value(id value.ID) value.Value { return s.interner.Value(id) }
