// What a plugin prints, sent to the engine as it comes.
package main

import (
	"io"
	"sync"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

type pluginStream = grpc.ServerStreamingServer[pulumirpc.RunPluginResponse]

// A stream takes one message at a time, and a program has two outputs.
var sending sync.Mutex

type outputSender struct {
	wrap   func([]byte) *pulumirpc.RunPluginResponse
	stream pluginStream
}

func sender(wrap func([]byte) *pulumirpc.RunPluginResponse, stream pluginStream) io.Writer {
	return outputSender{wrap: wrap, stream: stream}
}

func (output outputSender) Write(text []byte) (int, error) {
	sending.Lock()
	defer sending.Unlock()
	return len(text), output.stream.Send(output.wrap(append([]byte{}, text...)))
}
