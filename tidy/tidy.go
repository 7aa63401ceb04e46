// Package tidy holds no code: its tests are about the code of the others.
package tidy
