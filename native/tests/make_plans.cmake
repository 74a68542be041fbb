# linkcheck_make_plans(<target> <folder>)
#
# Makes every plan of plans/*.json in <folder>, while <target> is built, with the tool that documents the format.
include_guard(GLOBAL)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(linkcheck_plan_sources "${CMAKE_CURRENT_LIST_DIR}/plans")
set(linkcheck_make_plan "${CMAKE_CURRENT_LIST_DIR}/../gpusim/make_plan.py")

function(linkcheck_make_plans target folder)
    file(GLOB specs CONFIGURE_DEPENDS "${linkcheck_plan_sources}/*.json")
    file(MAKE_DIRECTORY "${folder}")
    set(plans "")
    foreach(spec IN LISTS specs)
        cmake_path(GET spec STEM name)
        set(plan "${folder}/${name}.plan")
        add_custom_command(
            OUTPUT "${plan}"
            COMMAND Python3::Interpreter "${linkcheck_make_plan}" "${spec}" "${plan}"
            DEPENDS "${spec}" "${linkcheck_make_plan}"
            VERBATIM)
        list(APPEND plans "${plan}")
    endforeach()
    add_custom_target(${target} DEPENDS ${plans})
    set_target_properties(${target} PROPERTIES LINKCHECK_PLANS "${plans}")
endfunction()
