package views

import (
	"github.com/heddle-live/heddle/sdk/frame"
)

// named spells the frames of a view with named parts, each of them a unit: one
// frame if it fits into pieceBytes, else all snapshots in pieces and then a last
// frame with what changed.
func (e *encoder) named(header frame.Header, p publication, units []unitRows, pieceBytes int) {
	if e.namedWhole(header, p, units, pieceBytes) {
		return
	}
	e.buf, e.starts = e.buf[:0], e.starts[:0]
	for i := range units {
		e.namedPieces(header, &units[i], pieceBytes)
	}
	for change := p.changes != nil; ; change = false {
		start := len(e.buf)
		e.openUnits(header)
		for i := range units {
			e.buf = frame.AppendUnitStart(e.buf, units[i].name)
			e.buf = frame.AppendRowsEnd(frame.AppendSnapshotStart(e.buf))
			e.closeUnit(p, i, units[i].width, change)
		}
		e.closeUnits(p, change)
		// A base without the rest would say that nothing changed.
		if !change || len(e.buf)-start <= pieceBytes {
			return
		}
		e.buf, e.starts = e.buf[:start], e.starts[:len(e.starts)-1]
	}
}

// namedWhole spells one frame, and returns false as soon as it is too large.
func (e *encoder) namedWhole(header frame.Header, p publication, units []unitRows,
	pieceBytes int,
) bool {
	e.openUnits(header)
	for i := range units {
		u := &units[i]
		e.buf = frame.AppendSnapshotStart(frame.AppendUnitStart(e.buf, u.name))
		for at := 0; at < len(u.rows); at += u.width {
			e.buf = appendRow(e.buf, u.rows[at:at+u.width])
			if len(e.buf) > pieceBytes {
				return false
			}
		}
		e.buf = frame.AppendRowsEnd(e.buf)
		e.closeUnit(p, i, u.width, p.changes != nil)
	}
	e.closeUnits(p, p.changes != nil)
	return len(e.buf) <= pieceBytes
}

// namedPieces spells the snapshot of one unit in frames of its own.
func (e *encoder) namedPieces(header frame.Header, u *unitRows, pieceBytes int) {
	open := false
	for at := 0; at < len(u.rows); at += u.width {
		if !open {
			e.openUnits(header)
			e.buf = frame.AppendSnapshotStart(frame.AppendUnitStart(e.buf, u.name))
			open = true
		}
		e.buf = appendRow(e.buf, u.rows[at:at+u.width])
		last := at+u.width == len(u.rows)
		if last || len(e.buf)-e.starts[len(e.starts)-1] >= pieceBytes {
			e.buf = frame.AppendUnitEnd(frame.AppendRowsEnd(e.buf))
			e.buf = frame.AppendFrameEnd(frame.AppendUnitsEnd(e.buf))
			open = false
		}
	}
}

func (e *encoder) openUnits(h frame.Header) {
	e.starts = append(e.starts, len(e.buf))
	e.buf = frame.AppendPartsStart(frame.AppendFrameStart(e.buf, h))
}

func (e *encoder) closeUnit(p publication, i, width int, change bool) {
	if change {
		e.buf = e.appendChange(e.buf, &p.changes[i], width)
	}
	if s := p.staleOf(i); s != nil {
		e.buf = frame.AppendStale(e.buf, *s)
	}
	e.buf = frame.AppendUnitEnd(e.buf)
}

func (e *encoder) closeUnits(p publication, change bool) {
	e.buf = frame.AppendLast(frame.AppendUnitsEnd(e.buf))
	if change {
		e.buf = frame.AppendBase(e.buf, p.base)
	}
	e.buf = frame.AppendFrameEnd(e.buf)
}
