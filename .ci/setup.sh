#!/usr/bin/env bash
# setup.sh build|test: make sure that the system packages are there.
#
# On Debian and its kin missing packages are installed when this runs as root;
# otherwise the one command to run is printed. On a Mac it says what is missing.
set -euo pipefail

if [ "$(uname -s)" = Darwin ]; then
	missing=0
	xcode-select -p >/dev/null 2>&1 || { echo "Missing: the Xcode command-line tools. Run: xcode-select --install"; missing=1; }
	command -v go >/dev/null || { echo "Missing: Go 1.26 or later, from https://go.dev/dl/"; missing=1; }
	exit $missing
fi

command -v go >/dev/null || { echo "Missing: Go 1.26 or later, from https://go.dev/dl/"; exit 1; }
command -v dpkg-query >/dev/null || { echo "This is no Debian: the packages that Fyne needs are listed at https://docs.fyne.io/started/"; exit 0; }

packages=(gcc g++ make pkg-config libgl1-mesa-dev xorg-dev libxkbcommon-dev fonts-noto-core python3)
if [ "${1:-build}" = test ]; then
	packages+=(xvfb xauth xdotool dbus dbus-x11 imagemagick libgl1-mesa-dri iproute2 libibverbs-dev)
fi
python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)

missing=()
for p in "${packages[@]}"; do
	[[ $(dpkg-query -W -f '${Status}' "$p" 2>/dev/null) == *' installed' ]] || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "Some system packages are missing. Run: sudo apt-get install -y ${missing[*]}"
	exit 1
fi
echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -qq -y -o DPkg::Lock::Timeout=300)
"${apt[@]}" install --no-install-recommends "${missing[@]}" >/dev/null 2>&1 || {
	"${apt[@]}" update >/dev/null
	"${apt[@]}" install --no-install-recommends "${missing[@]}" >/dev/null
}
