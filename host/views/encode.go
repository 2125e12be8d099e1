package views

import (
	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/sdk/frame"
)

// publication is what one group of a key says besides the rows.
type publication struct {
	revision uint64
	sequence uint64
	base     uint64
	// changes are since base, one for each part of the view; nil for the first group
	// of a watch, which has no base.
	changes []engine.Change
	// stale says for each part of the view what its rows lack, nil where nothing; it is
	// nil if nothing lacks anywhere.
	stale []*frame.Stale
}

// staleOf returns what a part's rows lack.
func (p *publication) staleOf(part int) *frame.Stale {
	if p.stale == nil {
		return nil
	}
	return p.stale[part]
}

// unitRows are the rows of one part of a view at a key, flat.
type unitRows struct {
	name  string // "" for the only one
	width int
	rows  []value.Value
}

// textBytes returns how many bytes the texts of rows take, which frames take at least.
func textBytes(units []unitRows) (n int) {
	for i := range units {
		for _, v := range units[i].rows {
			n += len(v.Str())
		}
	}
	return n
}

// encoder spells groups. It reuses its memory: what it returns is valid until
// its next call, which suits tracks because they copy.
type encoder struct {
	buf    []byte
	starts []int // of each frame in buf
	frames []moq.Frame
}

// bytes returns the size of the last group.
func (e *encoder) bytes() int { return len(e.buf) }

// group spells the frames of one group: the rows in pieces of about pieceBytes,
// the last one with what changed, unless that alone would burst a piece; readers
// then find the difference themselves.
func (e *encoder) group(t *ingest.Turn, p publication, units []unitRows, pieceBytes int,
) []moq.Frame {
	header := frame.Header{Revision: p.revision, Epoch: t.Epoch, Schema: t.Schema}
	e.buf, e.starts = e.buf[:0], e.starts[:0]
	if units[0].name != "" {
		e.named(header, p, units, pieceBytes)
	} else {
		e.plain(header, p, units[0].rows, units[0].width, pieceBytes)
	}
	return e.slice(t.NowMilli)
}

// plain spells the frames of a view without named parts.
func (e *encoder) plain(header frame.Header, p publication, rows []value.Value,
	width, pieceBytes int,
) {
	e.open(header)
	for at := 0; at < len(rows); at += width {
		before := len(e.buf)
		e.buf = appendRow(e.buf, rows[at:at+width])
		start := e.starts[len(e.starts)-1]
		if len(e.buf)-start > pieceBytes && at > 0 && e.buf[before-1] != '[' {
			e.split(header, before)
		}
	}
	e.buf = frame.AppendLast(frame.AppendRowsEnd(e.buf))
	if p.changes != nil {
		mark := len(e.buf)
		e.buf = e.appendChange(frame.AppendBase(e.buf, p.base), &p.changes[0], width)
		// A base without the rest would say that nothing changed.
		if len(e.buf)-e.starts[len(e.starts)-1] > pieceBytes {
			e.buf = e.buf[:mark]
		}
	}
	if s := p.staleOf(0); s != nil {
		e.buf = frame.AppendStale(e.buf, *s)
	}
	e.buf = frame.AppendFrameEnd(e.buf)
}

func (e *encoder) open(h frame.Header) {
	e.starts = append(e.starts, len(e.buf))
	e.buf = frame.AppendSnapshotStart(frame.AppendFrameStart(e.buf, h))
}

// split closes the piece in front of the row that begins at, and moves that row
// into a new piece.
func (e *encoder) split(h frame.Header, at int) {
	row := string(e.buf[at+1:]) // behind its comma
	e.buf = frame.AppendFrameEnd(frame.AppendRowsEnd(e.buf[:at]))
	e.open(h)
	e.buf = append(e.buf, row...)
}

// appendChange appends insert and retract.
func (e *encoder) appendChange(dst []byte, c *engine.Change, width int) []byte {
	dst = appendRows(frame.AppendInsertStart(dst), c.Insert, width)
	dst = appendRows(frame.AppendRetractStart(frame.AppendRowsEnd(dst)), c.Retract, width)
	return frame.AppendRowsEnd(dst)
}

func (e *encoder) slice(timestamp int64) []moq.Frame {
	e.frames = e.frames[:0]
	for i, start := range e.starts {
		end := len(e.buf)
		if i+1 < len(e.starts) {
			end = e.starts[i+1]
		}
		e.frames = append(e.frames, moq.Frame{Timestamp: timestamp, Payload: e.buf[start:end]})
	}
	return e.frames
}

// closed spells the last frame of a track.
func (e *encoder) closed(t *ingest.Turn, reason frame.Closed) []byte {
	header := frame.Header{Revision: t.Revision, Epoch: t.Epoch, Schema: t.Schema}
	e.buf = frame.AppendFrameStart(e.buf[:0], header)
	e.buf = frame.AppendFrameEnd(frame.AppendClosed(e.buf, reason))
	return e.buf
}

func appendRows(dst []byte, rows []value.Value, width int) []byte {
	if width == 0 {
		return dst // a row without columns has no spelling
	}
	for at := 0; at < len(rows); at += width {
		dst = appendRow(dst, rows[at:at+width])
	}
	return dst
}

func appendRow(dst []byte, row []value.Value) []byte {
	dst = frame.AppendRowStart(dst)
	for _, v := range row {
		switch v.Kind() {
		case value.Int:
			dst = frame.AppendInt(dst, v.Int())
		case value.Float:
			dst = frame.AppendFloat(dst, v.Float())
		case value.String:
			dst = frame.AppendString(dst, v.Str())
		case value.Bool:
			dst = frame.AppendBool(dst, v.Bool())
		case value.Bytes:
			dst = frame.AppendBytes(dst, v.Str())
		case value.Timestamp:
			dst = frame.AppendTimestamp(dst, v.Int())
		case value.Null:
			dst = frame.AppendNull(dst)
		default:
			panic("views: a row holds an invalid value")
		}
	}
	return frame.AppendRowEnd(dst)
}

func frameType(k value.Kind) frame.Type {
	switch k {
	case value.Int:
		return frame.Int
	case value.Float:
		return frame.Float
	case value.String:
		return frame.String
	case value.Bool:
		return frame.Bool
	case value.Bytes:
		return frame.BytesType
	case value.Timestamp:
		return frame.TimestampType
	default:
		panic("views: a column of an invalid type")
	}
}

func frameColumns(columns []analysis.Column) []frame.Column {
	out := make([]frame.Column, len(columns))
	for i, c := range columns {
		out[i] = frame.Column{Name: c.Name, Type: frameType(c.Type), Nullable: c.Nullable}
	}
	return out
}
