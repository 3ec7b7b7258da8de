#!/bin/sh
# Builds the wheel of a system into a folder: build.sh FOLDER [VERSION [GOOS GOARCH TAG]], such as
#
#	build.sh dist 1.2.0 darwin arm64 macosx_11_0_arm64
#
# It needs Go, and Python with setuptools and wheel, PYTHON if it is not python3. The program is static, so that the oldest
# tag of Linux is right.
set -e
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
os=${3:-$(go env GOOS)} arch=${4:-$(go env GOARCH)}
case $os/$arch in
linux/amd64) tag=manylinux2014_x86_64 ;;
linux/arm64) tag=manylinux2014_aarch64 ;;
darwin/amd64) tag=macosx_11_0_x86_64 ;;
darwin/arm64) tag=macosx_11_0_arm64 ;;
windows/amd64) tag=win_amd64 ;;
esac
tag=${5:-$tag}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r nnopt pyproject.toml README.md ../../../LICENSE "$work"
rm -rf "$work/nnopt/__pycache__"
mkdir "$work/nnopt/bin"
GOOS=$os GOARCH=$arch CGO_ENABLED=0 go build -C ../../.. -ldflags="-s -w" -o "$work/nnopt/bin/" ./cmd/nnopt
cd "$work"
[ -z "$2" ] || sed -i.bak "s/^version = .*/version = \"$2\"/" pyproject.toml
"${PYTHON:-python3}" -c 'import setuptools; setuptools.setup()' -q bdist_wheel --plat-name "$tag" --dist-dir "$out"
