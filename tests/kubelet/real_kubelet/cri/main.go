// A container runtime that has nothing and does nothing, for a kubelet that is only asked whether it starts.
// Usage: cri SOCKET DOCKER-SOCKET; it says "ready" on its output once it listens, and ends with its input.
//
// On the second socket it is just enough of a Docker daemon to say where its root is: the cAdvisor in a kubelet 1.20 asks
// for that five times, a second apart, before it believes that there is no Docker (container/docker/factory.go, RootDir).
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1alpha2"
)

// runtime answers what a kubelet without pods asks; all else is "not implemented".
type runtime struct {
	cri.UnimplementedRuntimeServiceServer
}

func (*runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "empty", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1alpha2"}, nil
}

func (*runtime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	conditions := []*cri.RuntimeCondition{{Type: cri.RuntimeReady, Status: true}, {Type: cri.NetworkReady, Status: true}}
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: conditions}}, nil
}

func (*runtime) UpdateRuntimeConfig(context.Context, *cri.UpdateRuntimeConfigRequest) (*cri.UpdateRuntimeConfigResponse, error) {
	return &cri.UpdateRuntimeConfigResponse{}, nil
}

func (*runtime) ListPodSandbox(context.Context, *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	return &cri.ListPodSandboxResponse{}, nil
}

func (*runtime) ListContainers(context.Context, *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	return &cri.ListContainersResponse{}, nil
}

func (*runtime) ListContainerStats(context.Context, *cri.ListContainerStatsRequest) (*cri.ListContainerStatsResponse, error) {
	return &cri.ListContainerStatsResponse{}, nil
}

// images is the image half of the same runtime.
type images struct {
	cri.UnimplementedImageServiceServer
}

func (*images) ListImages(context.Context, *cri.ListImagesRequest) (*cri.ListImagesResponse, error) {
	return &cri.ListImagesResponse{}, nil
}

func (*images) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	return &cri.ImageFsInfoResponse{}, nil
}

func dockerRoot(answer http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(answer, `{"DockerRootDir": "/var/lib/docker"}`)
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: cri SOCKET DOCKER-SOCKET")
		os.Exit(2)
	}
	server := grpc.NewServer()
	cri.RegisterRuntimeServiceServer(server, &runtime{})
	cri.RegisterImageServiceServer(server, &images{})
	runtimes, dockers := listen(os.Args[1]), listen(os.Args[2])
	go func() { fail(server.Serve(runtimes)) }()
	go func() { fail(http.Serve(dockers, http.HandlerFunc(dockerRoot))) }()
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func listen(socket string) net.Listener {
	listener, err := net.Listen("unix", socket)
	fail(err)
	return listener
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
