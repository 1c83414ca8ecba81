#!/bin/sh
# What the image starts: the words of TorchServe's image, or any other command as it stands.
#   serve [FLAGS]                         the server with /home/model-server/config.properties
#   torchserve FLAGS, msx-serve FLAGS     the server with these flags; FLAGS alone are the same
# The server stays in the foreground, whatever the flags say. As process 1 msx-serve itself hands signals on and reaps.
set -eu

config=/home/model-server/config.properties
case ${1-serve} in
    serve)
        [ $# -eq 0 ] || shift
        set -- msx-serve --foreground --ts-config "$config" "$@" # the last --ts-config counts
        ;;
    torchserve | msx-serve)
        shift
        set -- msx-serve --foreground "$@"
        ;;
    -*) set -- msx-serve --foreground "$@" ;;
esac

# CANN's variables, as its own image's entry point sets them; its file is written for bash.
if [ -r "${CANN_SET_ENV:=/usr/local/Ascend/ascend-toolkit/set_env.sh}" ]; then
    exec bash -c '. "$0"; exec "$@"' "$CANN_SET_ENV" "$@"
fi
exec "$@"
