//go:build !unix

package env

import (
	"errors"
	"os"
)

// tryLock needs advisory locks that end with the process.
func tryLock(*os.File) (bool, error) {
	return false, errors.New("environments need advisory file locks, which this system lacks")
}
