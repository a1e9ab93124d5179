# OPENRNN_PORTABLE: programs that run on another machine, every library but the C one inside.

# fmt has no archive here; with its code inline nothing asks for the shared one.
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
# What nothing calls is left out, function by function, and with it what newer C libraries alone have:
# libstdc++'s random numbers of the system.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections)
