package frame

import "encoding/base64"

const (
	// The alphabets of RFC 4648: cells use the first with padding, keys the second, whose
	// characters mean nothing in a path, without.
	cellAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	keyAlphabet  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)

// appendBase64 spells s. Package encoding/base64 takes no string without a copy.
func appendBase64(dst []byte, s, alphabet string, padded bool) []byte {
	for ; len(s) >= 3; s = s[3:] {
		n := uint32(s[0])<<16 | uint32(s[1])<<8 | uint32(s[2])
		dst = append(dst, alphabet[n>>18], alphabet[n>>12&63], alphabet[n>>6&63], alphabet[n&63])
	}
	switch len(s) {
	case 1:
		dst = append(dst, alphabet[s[0]>>2], alphabet[s[0]<<4&63])
	case 2:
		n := uint32(s[0])<<8 | uint32(s[1])
		dst = append(dst, alphabet[n>>10], alphabet[n>>4&63], alphabet[n<<2&63])
	default:
		return dst
	}
	if padded {
		dst = append(dst, "=="[:3-len(s)]...)
	}
	return dst
}

// ParseBase64 reads bytes as a cell spells them: base64 of RFC 4648 with padding. It
// returns false for any other spelling, so that each value has one.
func ParseBase64(text string) (Bytes, bool) { return parseBase64(text, base64.StdEncoding) }

func parseBase64(text string, encoding *base64.Encoding) (Bytes, bool) {
	b, err := encoding.Strict().DecodeString(text)
	// The decoder skips line ends, which shows in the length.
	if err != nil || encoding.EncodedLen(len(b)) != len(text) {
		return "", false
	}
	return Bytes(b), true
}
