package engine

import "github.com/heddle-live/heddle/engine/analysis"

// Op is one operation of a transaction, as the analysis checks it.
type Op = analysis.Op
