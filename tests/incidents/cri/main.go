// A container runtime whose pods need no kernel: sandboxes and containers are records in memory, so that a real kubelet
// starts, probes and ends pods. Its images come at once, or not at all while their registry is stalled.
// Usage: pods-cri SOCKET STALLED; STALLED is a folder: a pull from registry R waits while the file STALLED/R is there.
// Usage: pods-cri pull SOCKET IMAGE SECONDS; one pull through any runtime, with a deadline.
//
// It tells on standard output when a container starts and ends, and when a preStop hook begins and ends.
//
// A container with the environment variable STOP_SECONDS needs that long to stop, but never longer than its grace period.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1alpha2"
)

type sandbox struct {
	config  *cri.PodSandboxConfig
	state   cri.PodSandboxState
	created int64
}

type container struct {
	config           *cri.ContainerConfig
	sandbox          string
	state            cri.ContainerState
	created, started int64
	finished         int64
}

// runtime holds all pods.
type runtime struct {
	cri.UnimplementedRuntimeServiceServer
	lock       sync.Mutex
	last       int
	sandboxes  map[string]*sandbox
	containers map[string]*container
}

func (r *runtime) id() string {
	r.last++
	return fmt.Sprintf("%064x", r.last)
}

func (*runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "pods", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1alpha2"}, nil
}

func (*runtime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	conditions := []*cri.RuntimeCondition{{Type: cri.RuntimeReady, Status: true}, {Type: cri.NetworkReady, Status: true}}
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: conditions}}, nil
}

func (*runtime) UpdateRuntimeConfig(context.Context, *cri.UpdateRuntimeConfigRequest) (*cri.UpdateRuntimeConfigResponse, error) {
	return &cri.UpdateRuntimeConfigResponse{}, nil
}

func (r *runtime) RunPodSandbox(_ context.Context, request *cri.RunPodSandboxRequest) (*cri.RunPodSandboxResponse, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	id := r.id()
	r.sandboxes[id] = &sandbox{config: request.Config, created: time.Now().UnixNano()}
	return &cri.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (r *runtime) StopPodSandbox(_ context.Context, request *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for id, each := range r.containers {
		if each.sandbox == request.PodSandboxId {
			each.end(id)
		}
	}
	if found := r.sandboxes[request.PodSandboxId]; found != nil {
		found.state = cri.PodSandboxState_SANDBOX_NOTREADY
	}
	return &cri.StopPodSandboxResponse{}, nil
}

func (r *runtime) RemovePodSandbox(_ context.Context, request *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for id, each := range r.containers {
		if each.sandbox == request.PodSandboxId {
			delete(r.containers, id)
		}
	}
	delete(r.sandboxes, request.PodSandboxId)
	return &cri.RemovePodSandboxResponse{}, nil
}

func (r *runtime) PodSandboxStatus(_ context.Context, request *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	found := r.sandboxes[request.PodSandboxId]
	if found == nil {
		return nil, status.Error(codes.NotFound, "no such sandbox")
	}
	return &cri.PodSandboxStatusResponse{Status: &cri.PodSandboxStatus{
		Id: request.PodSandboxId, Metadata: found.config.Metadata, State: found.state, CreatedAt: found.created, Labels: found.config.Labels,
		Annotations: found.config.Annotations, Network: &cri.PodSandboxNetworkStatus{Ip: "127.0.0.1"},
		Linux: &cri.LinuxPodSandboxStatus{Namespaces: &cri.Namespace{Options: found.config.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
	}}, nil
}

func (r *runtime) ListPodSandbox(_ context.Context, request *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	answer := &cri.ListPodSandboxResponse{}
	for id, each := range r.sandboxes {
		filter := request.GetFilter()
		if (filter.GetId() != "" && filter.GetId() != id) || (filter.GetState() != nil && filter.GetState().State != each.state) || !fits(filter.GetLabelSelector(), each.config.Labels) {
			continue
		}
		answer.Items = append(answer.Items, &cri.PodSandbox{
			Id: id, Metadata: each.config.Metadata, State: each.state, CreatedAt: each.created, Labels: each.config.Labels, Annotations: each.config.Annotations,
		})
	}
	return answer, nil
}

func fits(wanted, labels map[string]string) bool {
	for name, value := range wanted {
		if labels[name] != value {
			return false
		}
	}
	return true
}

func (r *runtime) CreateContainer(_ context.Context, request *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	id := r.id()
	r.containers[id] = &container{config: request.Config, sandbox: request.PodSandboxId, created: time.Now().UnixNano()}
	if request.Config.LogPath != "" && request.SandboxConfig.LogDirectory != "" {
		path := filepath.Join(request.SandboxConfig.LogDirectory, request.Config.LogPath)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		_ = os.WriteFile(path, nil, 0o644)
	}
	return &cri.CreateContainerResponse{ContainerId: id}, nil
}

func (r *runtime) of(id string) (*container, error) {
	if found := r.containers[id]; found != nil {
		return found, nil
	}
	return nil, status.Error(codes.NotFound, "no such container")
}

func (r *runtime) StartContainer(_ context.Context, request *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	found, err := r.of(request.ContainerId)
	if err != nil {
		return nil, err
	}
	found.state, found.started = cri.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
	fmt.Println("container started", request.ContainerId)
	return &cri.StartContainerResponse{}, nil
}

func (c *container) end(id string) {
	if c.state == cri.ContainerState_CONTAINER_RUNNING {
		fmt.Println("container ended", id)
		c.state, c.finished = cri.ContainerState_CONTAINER_EXITED, time.Now().UnixNano()
	}
}

func (c *container) needs() time.Duration {
	for _, each := range c.config.Envs {
		if each.Key == "STOP_SECONDS" {
			if seconds, err := strconv.ParseFloat(each.Value, 64); err == nil {
				return time.Duration(seconds * float64(time.Second))
			}
		}
	}
	return 0
}

func (r *runtime) StopContainer(ctx context.Context, request *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	r.lock.Lock()
	found, err := r.of(request.ContainerId)
	r.lock.Unlock()
	if err != nil {
		return nil, err
	}
	needs := found.needs()
	if found.state != cri.ContainerState_CONTAINER_RUNNING {
		needs = 0
	}
	if grace := time.Duration(request.Timeout) * time.Second; grace >= 0 && grace < needs { // SIGKILL
		needs = grace
	}
	select {
	case <-time.After(needs):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	found.end(request.ContainerId)
	return &cri.StopContainerResponse{}, nil
}

func (r *runtime) RemoveContainer(_ context.Context, request *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.containers, request.ContainerId)
	return &cri.RemoveContainerResponse{}, nil
}

func (r *runtime) ContainerStatus(_ context.Context, request *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	found, err := r.of(request.ContainerId)
	if err != nil {
		return nil, err
	}
	return &cri.ContainerStatusResponse{Status: &cri.ContainerStatus{
		Id: request.ContainerId, Metadata: found.config.Metadata, State: found.state, CreatedAt: found.created, StartedAt: found.started,
		FinishedAt: found.finished, Image: found.config.Image, ImageRef: found.config.Image.Image, Labels: found.config.Labels,
		Annotations: found.config.Annotations, LogPath: found.config.LogPath,
	}}, nil
}

func (r *runtime) ListContainers(_ context.Context, request *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	answer, filter := &cri.ListContainersResponse{}, request.GetFilter()
	for id, each := range r.containers {
		if (filter.GetId() != "" && filter.GetId() != id) || (filter.GetPodSandboxId() != "" && filter.GetPodSandboxId() != each.sandbox) ||
			(filter.GetState() != nil && filter.GetState().State != each.state) || !fits(filter.GetLabelSelector(), each.config.Labels) {
			continue
		}
		answer.Containers = append(answer.Containers, &cri.Container{
			Id: id, PodSandboxId: each.sandbox, Metadata: each.config.Metadata, Image: each.config.Image, ImageRef: each.config.Image.Image,
			State: each.state, CreatedAt: each.created, Labels: each.config.Labels, Annotations: each.config.Annotations,
		})
	}
	return answer, nil
}

func (*runtime) ListContainerStats(context.Context, *cri.ListContainerStatsRequest) (*cri.ListContainerStatsResponse, error) {
	return &cri.ListContainerStatsResponse{}, nil
}

// ExecSync is what a preStop hook and a probe call. `sleep N` takes N seconds; all else succeeds at once.
func (r *runtime) ExecSync(ctx context.Context, request *cri.ExecSyncRequest) (*cri.ExecSyncResponse, error) {
	r.lock.Lock()
	found, err := r.of(request.ContainerId)
	runs := err == nil && found.state == cri.ContainerState_CONTAINER_RUNNING
	r.lock.Unlock()
	if !runs {
		return nil, status.Error(codes.FailedPrecondition, "the container is not running")
	}
	if len(request.Cmd) == 2 && request.Cmd[0] == "sleep" {
		seconds, _ := strconv.ParseFloat(request.Cmd[1], 64)
		fmt.Println("hook begins", request.ContainerId)
		defer fmt.Println("hook ended", request.ContainerId)
		select {
		case <-time.After(time.Duration(seconds * float64(time.Second))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &cri.ExecSyncResponse{}, nil
}

// images is the image half of the same runtime.
type images struct {
	cri.UnimplementedImageServiceServer
	lock    sync.Mutex
	present map[string]bool
	stalled string
}

func image(name string) *cri.Image {
	return &cri.Image{Id: name, RepoTags: []string{name}, Size_: 1 << 20, Uid: &cri.Int64Value{Value: 0}}
}

func (s *images) ListImages(context.Context, *cri.ListImagesRequest) (*cri.ListImagesResponse, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	answer := &cri.ListImagesResponse{}
	for name := range s.present {
		answer.Images = append(answer.Images, image(name))
	}
	return answer, nil
}

func (s *images) ImageStatus(_ context.Context, request *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.present[request.Image.Image] {
		return &cri.ImageStatusResponse{Image: image(request.Image.Image)}, nil
	}
	return &cri.ImageStatusResponse{}, nil
}

func (s *images) PullImage(ctx context.Context, request *cri.PullImageRequest) (*cri.PullImageResponse, error) {
	name := request.Image.Image
	switchFile := filepath.Join(s.stalled, strings.SplitN(name, "/", 2)[0])
	for wait := 50 * time.Millisecond; ; wait = 20 * time.Millisecond {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if _, err := os.Stat(switchFile); err != nil {
			break
		}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.present[name] = true
	return &cri.PullImageResponse{ImageRef: name}, nil
}

func (s *images) RemoveImage(_ context.Context, request *cri.RemoveImageRequest) (*cri.RemoveImageResponse, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.present, request.Image.Image)
	return &cri.RemoveImageResponse{}, nil
}

func (*images) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	return &cri.ImageFsInfoResponse{}, nil
}

func serve(socket, stalled string) {
	_ = os.Remove(socket)
	server := grpc.NewServer()
	cri.RegisterRuntimeServiceServer(server, &runtime{sandboxes: map[string]*sandbox{}, containers: map[string]*container{}})
	cri.RegisterImageServiceServer(server, &images{present: map[string]bool{}, stalled: stalled})
	listener, err := net.Listen("unix", socket)
	fail(err)
	fmt.Println("ready")
	fail(server.Serve(listener))
}

func pull(socket, name, seconds string) {
	limit, err := strconv.ParseFloat(seconds, 64)
	fail(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(limit*float64(time.Second)))
	defer cancel()
	connection, err := grpc.DialContext(ctx, "unix://"+socket, grpc.WithInsecure(), grpc.WithBlock())
	fail(err)
	answer, err := cri.NewImageServiceClient(connection).PullImage(ctx, &cri.PullImageRequest{Image: &cri.ImageSpec{Image: name}})
	fail(err)
	fmt.Println(answer.ImageRef)
}

func main() {
	switch {
	case len(os.Args) == 3:
		serve(os.Args[1], os.Args[2])
	case len(os.Args) == 5 && os.Args[1] == "pull":
		pull(os.Args[2], os.Args[3], os.Args[4])
	default:
		fmt.Fprintln(os.Stderr, "usage: pods-cri SOCKET STALLED | pods-cri pull SOCKET IMAGE SECONDS")
		os.Exit(2)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
