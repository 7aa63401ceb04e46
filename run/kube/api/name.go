package api

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// nameHash is the length of the hash behind a name.
const nameHash = 8

// JobName is the name of the record of a job: its kind and name in lower case, so that
// people find it, and a hash of uid behind that where there is one. uid tells apart
// what else has that kind and name: an object made again after its namesake was
// deleted, whose record may still be there, or one of several gangs of an object. A
// name that is too long, or not one for Kubernetes (a group may be named by any
// label), is cut or mended and has the hash too.
func JobName(kind, name, uid string) string {
	whole := strings.ToLower(kind) + "-" + name
	short := mend(whole)
	if uid == "" && short == whole && len(whole) <= validation.DNS1123SubdomainMaxLength {
		return whole
	}
	sum := sha256.Sum256([]byte(kind + "\x00" + name + "\x00" + uid))
	most := validation.DNS1123SubdomainMaxLength - nameHash - 1
	if len(short) > most {
		short = strings.TrimRight(short[:most], "-.")
	}
	return short + "-" + hex.EncodeToString(sum[:])[:nameHash]
}

// mend makes a name of letters, digits, dashes and single dots between them.
func mend(name string) string {
	b := []byte(strings.ToLower(name))
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' {
			b[i] = '-'
		}
	}
	for i, c := range b {
		// A dot has a letter or digit on both sides.
		if c == '.' && (i == 0 || i == len(b)-1 || !letter(b[i-1]) || !letter(b[i+1])) {
			b[i] = '-'
		}
	}
	return strings.Trim(string(b), "-")
}

func letter(c byte) bool { return c != '-' && c != '.' }
