package quic

import (
	"errors"

	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/webtransport-go"

	"github.com/heddle-live/heddle/protocol"
)

// WebTransport spreads its 32-bit stream codes over a range of HTTP/3 codes,
// leaving out the code points of the form 0x1f*n + 0x21.
//
// Source: draft-ietf-webtrans-http3, "Resetting Data Streams".
const (
	wtCodeFirst  = 0x52e4a40fa8db
	wtCodeLast   = 0x52e5ac983162
	wtCodeStride = 0x1e
)

// appendable by neither side: codes of HTTP/3 that this package uses itself.
const (
	h3NoError         = 0x100
	h3RequestRejected = 0x10b
	wtSessionGone     = 0x170d7b68
)

// wireCode is code as the QUIC layer carries it.
func wireCode(code protocol.StreamCode, isWebTransport bool) quicgo.StreamErrorCode {
	if !isWebTransport {
		return quicgo.StreamErrorCode(code)
	}
	n := uint64(uint32(code))
	return quicgo.StreamErrorCode(wtCodeFirst + n + n/wtCodeStride)
}

// streamCode is the reverse of wireCode. Codes of HTTP/3 itself, which say
// nothing about the application's stream, become CodeClosed.
func streamCode(wire quicgo.StreamErrorCode, isWebTransport bool) protocol.StreamCode {
	if !isWebTransport {
		return protocol.StreamCode(wire)
	}
	if wire < wtCodeFirst || wire > wtCodeLast || (wire-0x21)%0x1f == 0 {
		return protocol.CodeClosed
	}
	shifted := uint64(wire - wtCodeFirst)
	return protocol.StreamCode(shifted - shifted/(wtCodeStride+1))
}

// sessionError turns the end of a connection or WebTransport session into the
// vocabulary's error; causes without a code, such as timeouts, stay as they are.
func sessionError(err error, isWebTransport bool) error {
	if e, ok := errors.AsType[*webtransport.SessionError](err); ok {
		return &protocol.SessionError{
			Code: protocol.SessionCode(e.ErrorCode), Remote: e.Remote, Reason: e.Message,
		}
	}
	e, ok := errors.AsType[*quicgo.ApplicationError](err)
	if !ok {
		return err
	}
	if isWebTransport {
		// The code belongs to HTTP/3 and says nothing of the session.
		return &protocol.SessionError{
			Code: protocol.SessionNoError, Remote: e.Remote, Reason: e.Error(),
		}
	}
	return &protocol.SessionError{
		Code: protocol.SessionCode(e.ErrorCode), Remote: e.Remote, Reason: e.ErrorMessage,
	}
}
