// Command nvml-placements prints how the GPUs that NVIDIA's Go library has as mocks can be cut into MIG instances.
//
// One JSON object a GPU: the mock, its name, and of each profile of GPU instances the slices, how many there may be, the
// memory in MB, and the places (start and size in memory slices) that NVML gives for it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

type place struct {
	Start uint32 `json:"start"`
	Size  uint32 `json:"size"`
}

type profile struct {
	Slices uint32  `json:"slices"`
	Most   uint32  `json:"most"`
	Memory uint64  `json:"memory"`
	Places []place `json:"places"`
}

type gpu struct {
	Mock     string    `json:"mock"`
	Name     string    `json:"name"`
	Profiles []profile `json:"profiles"`
}

// described asks a device as any program that cuts GPUs asks it.
func described(device nvml.Device) (gpu, error) {
	name, code := device.GetName()
	if code != nvml.SUCCESS {
		return gpu{}, fmt.Errorf("GetName: %v", code)
	}
	found := gpu{Name: name}
	for id := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		info, code := device.GetGpuInstanceProfileInfo(id)
		if code != nvml.SUCCESS {
			continue // a profile that this GPU does not have
		}
		offered, code := device.GetGpuInstancePossiblePlacements(&info)
		if code != nvml.SUCCESS {
			return gpu{}, fmt.Errorf("%s: GetGpuInstancePossiblePlacements(%d): %v", name, id, code)
		}
		row := profile{Slices: info.SliceCount, Most: info.InstanceCount, Memory: info.MemorySizeMB}
		for _, each := range offered {
			row.Places = append(row.Places, place{each.Start, each.Size})
		}
		slices.SortFunc(row.Places, func(a, b place) int { return int(a.Start) - int(b.Start) })
		found.Profiles = append(found.Profiles, row)
	}
	return found, nil
}

func main() {
	answers := json.NewEncoder(os.Stdout)
	for index, each := range []struct {
		mock   string
		config gpus.Config
	}{
		{"A100_PCIE_40GB", gpus.A100_PCIE_40GB},
		{"A100_PCIE_80GB", gpus.A100_PCIE_80GB},
		{"A100_SXM4_40GB", gpus.A100_SXM4_40GB},
		{"A100_SXM4_80GB", gpus.A100_SXM4_80GB},
		{"A30_PCIE_24GB", gpus.A30_PCIE_24GB},
		{"H100_SXM5_80GB", gpus.H100_SXM5_80GB},
		{"H200_SXM5_141GB", gpus.H200_SXM5_141GB},
		{"B200_SXM5_180GB", gpus.B200_SXM5_180GB},
	} {
		found, err := described(server.NewDeviceFromConfig(each.config, index))
		found.Mock = each.mock
		if err == nil {
			err = answers.Encode(found)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
