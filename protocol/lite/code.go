package lite

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/wire"
)

// codeOf chooses the code with which a stream is refused: the one border where
// our errors become wire codes.
func codeOf(err error) protocol.StreamCode {
	if se, ok := errors.AsType[*protocol.StreamError](err); ok {
		if se.Remote {
			return protocol.CodeCancel // the peer gave up; it needs no reason
		}
		return se.Code
	}
	switch {
	case errors.Is(err, wire.ErrBounds):
		return protocol.CodeBoundsExceeded
	case errors.Is(err, wire.ErrViolation):
		return protocol.CodeProtocolViolation
	case errors.Is(err, wire.ErrMalformed),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return protocol.CodeDecode
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return protocol.CodeTimeout
	case errors.Is(err, context.Canceled), isSessionEnd(err):
		return protocol.CodeCancel
	}
	return protocol.CodeInternal
}

func isSessionEnd(err error) bool {
	_, ok := errors.AsType[*protocol.SessionError](err)
	return ok
}
