package view

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Plain is a text with all written out that could steer a terminal: control characters,
// marks of writing direction, bytes that are no UTF-8. Line ends and tabs stay.
func Plain(text string) string {
	if strings.IndexFunc(text, steers) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case !steers(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		text = text[n:]
	}
	return b.String()
}

// steers reports whether a character does something to a terminal, or to those beside it.
// The two joiners are part of words in some scripts.
func steers(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	}
	return !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r)
}

// PlainJSON is JSON with that written out which could steer a terminal and which JSON
// leaves as it is; it is the same value.
func PlainJSON(data string) string {
	if strings.IndexFunc(data, steers) < 0 {
		return data
	}
	var b strings.Builder
	for _, r := range data {
		if !steers(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// PlainAll makes every text plain that an answer holds; into points to it.
func PlainAll(into any) { plain(reflect.ValueOf(into)) }

// plain goes through a value, which it may change where that can be set.
func plain(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(Plain(v.String()))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			plain(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			plain(field)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			plain(v.Index(i))
		}
	case reflect.Map:
		if !v.CanSet() || v.IsNil() {
			return
		}
		clean := reflect.MakeMapWithSize(v.Type(), v.Len())
		for key, value := range v.Seq2() {
			k, x := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			k.Set(key)
			x.Set(value)
			plain(k)
			plain(x)
			clean.SetMapIndex(k, x)
		}
		v.Set(clean)
	}
}
