// Package errors stands for that of Argo Workflows.
package errors

import "fmt"

const (
	CodeBadRequest = "ERR_BAD_REQUEST"
	CodeNotFound   = "ERR_NOT_FOUND"
)

func Errorf(code, format string, arguments ...any) error {
	return fmt.Errorf(code+": "+format, arguments...)
}
