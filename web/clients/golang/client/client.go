// Package client is empty in the source tree. TestAGoClient generates it from the OpenAPI document
// and puts it in place of this file, which keeps what generated code imports in go.mod.
package client

import (
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/oapi-codegen/runtime/types"
)
